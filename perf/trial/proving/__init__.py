"""`knickpoint prove`: a deployed product is asked what its sessions must keep to."""
