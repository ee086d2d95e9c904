"""Tests of the queue room; `queue` itself would hide the standard library's module."""
