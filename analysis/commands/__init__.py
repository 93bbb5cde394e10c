"""The commands that judge: one file each, named after its command."""
