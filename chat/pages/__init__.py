"""The pages: accounts, the list of rooms, one room. `chatsite.urls` names them."""
