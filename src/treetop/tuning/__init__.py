"""Search for settings that suit the user's own data: `treetop tune`."""
