"""What a change under `configs/` did, as a comment on its pull request; no network."""
