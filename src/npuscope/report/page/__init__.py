"""What the HTML pages of the tools share: one file each, no network, dark and light."""
