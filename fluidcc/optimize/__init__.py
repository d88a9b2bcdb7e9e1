"""Best parameters of a network: by gradients where there are any, by trials where there are none.

It verifies what it finds by trajectories and packets, so it stands above both engines.
"""
