"""Files that hold a block with the witness of its execution."""
