"""Labels: their names, features, trees and relevance at every level."""
