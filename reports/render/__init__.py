"""What every report uses: templates, colours, sentences, terminal output."""
