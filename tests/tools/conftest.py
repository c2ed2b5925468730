"""Tests of the harness are beside it; what is in the folders below belongs to tools."""

collect_ignore_glob = ["*/*"]
