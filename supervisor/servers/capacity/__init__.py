"""Room for the servers that are wanted: who sleeps while there is too little."""
