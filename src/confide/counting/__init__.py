"""Numbers -> counts over public candidates. The one door for private data: nothing else of it goes further."""
