"""The commands that report: one file each, named after its command."""
