// The cuts that Rhea's own tokenizers use, as the "pre_tokenizer" field spells them.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "rhea/components/tokenizer/bpe_trainer.h"

namespace rhea::tokenizer {

nlohmann::ordered_json ordered_pre_tokenizer_json(CutPattern pattern);
nlohmann::json pre_tokenizer_json(CutPattern pattern);

}  // namespace rhea::tokenizer
