"""Tests of the harness are in this folder; the subfolders belong to tools."""

collect_ignore_glob = ["*/*"]
