"""How each class of results is shown: its tables, its few numbers and its picture."""
