"""One trial, from an empty host to a sealed bundle: `harness` is its order on one page."""
