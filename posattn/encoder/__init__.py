"""What mechanisms and backends plug into: layers, encoder, decoders, head."""
