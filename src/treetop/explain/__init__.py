"""Why a label: words, encoder, the path through the tree, documents that are alike."""
