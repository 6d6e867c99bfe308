"""The word lists of the search. Data of this project, under its licence."""
