"""The dev chain's own source of blocks: what it begins with, and how it goes on."""
