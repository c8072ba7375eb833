// Strings.

def StringConcatOp : Instruction<[StringConcat], [], [], [], [broadcasting]>;

def StringSplitOp : Instruction<[StringSplit]> {
  X : dims(1..3) in {"a b", "a,b,c", "", "  a  b ", "é ü", "abc", "a,b"};
  let delimiter = {"", ",", " ", "b"};
  let maxsplit = -1..3;
}

def StringNormalizerOp : Instruction<[StringNormalizer]> {
  let form = {[dim()], [1, dim()]};
  X : form in {"Monday", "monday", "Tuesday", "ABC", "straße", "É"};
  let case_change_action = {"NONE", "LOWER", "UPPER"};
  let is_case_sensitive = {0, 1};
  let stopwords = {["monday"], ["Monday", "ABC"], ["x"]};
  let locale = "en_US";
}

def RegexFullMatchOp : Instruction<[RegexFullMatch]> {
  X : dims(0..3) in {"abc", "a1", "", "www.a.com", "日本", "a b"};
  let pattern = {"[a-z]+", ".*", "a\\d", "", "(a|b)+c?"} required;
}

// n-grams of two words at most over a pool of three single words and two pairs.
def TfIdfVectorizerOp : Instruction<[TfIdfVectorizer]> {
  let T = {int32, int64};
  X : {[dim()], [dim(), dim()]} in {2, 3, 5, 4, 7, 8, 6};
  let min_gram_length = {1, 2};
  let max_gram_length = 2;
  let max_skip_count = 0..3;
  let mode = {"TF", "IDF", "TFIDF"};
  let ngram_counts = [0, 3];
  let ngram_indexes = [0, 1, 2, 3, 4];
  let pool_int64s = [2, 3, 5, 5, 4, 7, 8] required;
  let weights = vector(5, 0.5..2.0);
}
