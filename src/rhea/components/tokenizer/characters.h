// Classes of characters as the components of tokenizer.json mean them, by ICU.
#pragma once
#include <cstdint>

namespace rhea::tokenizer {

bool is_mark(char32_t code_point);             // general category M
bool is_nonspacing_mark(char32_t code_point);  // Mn
bool is_number(char32_t code_point);           // N
bool is_punctuation(char32_t code_point);      // P, and all of ASCII's punctuation and symbols
// What BertNormalizer takes out: control, format and private characters, but not tab, LF, CR.
bool is_bert_control(char32_t code_point);
// The ideographs that BertNormalizer puts spaces around.
bool is_bert_ideograph(char32_t code_point);

// Key of the runs that UnicodeScripts cuts: the script, with Japanese kana counted as Han. -1 for
// the space and for what has no script: such characters belong to any run.
int32_t script_run(char32_t code_point);

}  // namespace rhea::tokenizer
