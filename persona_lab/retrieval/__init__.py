"""Which turns or memories answer a query: encoders, remembered vectors, exact search, BM25."""
