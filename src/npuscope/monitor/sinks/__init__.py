"""Where measurements go."""
