"""Rewrite rules within `dlcb.graph`, one file each."""
