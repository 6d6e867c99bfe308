"""What texts say: words, sentences, turns of phrase, rules of paraphrase."""
