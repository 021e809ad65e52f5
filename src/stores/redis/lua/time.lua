-- uses: base
-- The store's time.

return struct.pack(">d", now)
