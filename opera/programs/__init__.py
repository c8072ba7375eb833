"""What flows, as data: values, literals, operator calls, programs, migrated tests, and the words for what a run showed."""
