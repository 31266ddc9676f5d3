"""Reading: where records come from and how files and topics hold them."""
