"""Why a label: words, encoder, the way through the tree, documents that are alike."""
