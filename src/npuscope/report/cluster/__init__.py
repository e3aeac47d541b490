"""What `npuscope cluster` found: in the terminal, as JSON, as tables, as one page."""
