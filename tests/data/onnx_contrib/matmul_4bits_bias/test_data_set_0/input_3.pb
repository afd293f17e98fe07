J
/­ NMFZi