"""Traces by OpenTelemetry, where its SDK is installed and the configuration wants them."""
