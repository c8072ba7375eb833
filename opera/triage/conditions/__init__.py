"""What decides whether a program fails: claims, the programs near it that put them to the test, and what they answer."""
