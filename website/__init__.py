"""The docs as a site: its navigation, what is made beside its pages, and checks of the result."""
