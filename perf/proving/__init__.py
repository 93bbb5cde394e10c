"""Whether a product on a testbed keeps what Knickpoint relies on: `knickpoint prove`."""
