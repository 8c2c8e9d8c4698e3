"""The blocks of code in README.md and docs/ do what they say."""
