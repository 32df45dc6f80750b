"""Syntax trees to plans and plans to results: one file per kind of statement."""
