// The table of subcommands.
#include "rhea/cli/commands.h"

namespace rhea::cli {
namespace {

constexpr Command kCommands[] = {
    {"train", "train a model: --module M --config F [--section.option value ...]", cmd_train},
    {"run", "start a command with torchrun's flags: run --nproc_per_node=1 train ...", cmd_run},
    {"plan", "memory, kernels, time at the limit and fit of a run, without running it", cmd_plan},
    {"check", "overrides, kernels and ops from outside against what they replace", cmd_check},
    {"generate", "text from a published model folder", cmd_generate},
    {"score", "logits, loss and gradients of a published model folder", cmd_score},
    {"convert", "a model into another form: Hugging Face, native, from GGUF", cmd_convert},
    {"inspect", "tensors, types, sizes, metadata and problems of weights", cmd_inspect},
    {"eval", "loss and perplexity of a model folder on a text, per token and per byte", cmd_eval},
    {"config", "the resolved config of a run as JSON; --list: modules and functions", cmd_config},
    {"cache", "compiled plugins: list, clear", cmd_cache},
    {"doctor", "what this machine has, and what is missing for what", cmd_doctor},
    {"tokenizer", "text to ids and back: encode, decode, train, shard, info", cmd_tokenizer},
    {"version", "version, git revision, compiler, CPU features, oneDNN version", cmd_version},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace rhea::cli
