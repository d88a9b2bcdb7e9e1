"""From a network to the arrays that the engine works on."""
