// Sections `dataloader`, `tokenizer`, `validator`.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// One source of an interleaved loader.
struct DataSourceConfig : Config {
  std::string dataset = "jsonl";
  std::optional<std::string> dataset_path;
  bool infinite = true;
  double weight = 1;

  void fields(Visitor& v) override {
    v("dataset", dataset, "key of the data set table");
    v("dataset_path", dataset_path, "file, folder or glob");
    v("infinite", infinite, "start over when exhausted; all sources must agree");
    v("weight", weight, "share of the rows, relative to the other sources", greater_than(0));
  }
};

// From files to rows of tokens. Options of a data set of your own: derive from it.
struct DataloaderConfig : Config {
  std::string dataset = "debug_text";
  std::optional<std::string> dataset_path;
  bool infinite = true;
  int64_t num_workers = 0;
  std::optional<int64_t> prefetch_factor;
  int64_t seed = 42;
  bool shuffle = false;
  std::string packing = "concat";
  int64_t num_packing_bins = 8;
  std::string text_field = "text";
  std::string on_bad_row = "stop";
  std::vector<DataSourceConfig> sources;
  std::string stopping_strategy = "on_first_exhausted";

  void fields(Visitor& v) override {
    v("dataset", dataset,
      "key of the data set table: debug_text, c4, tokens, jsonl, text, random, ..., or one that a "
      "module registers");
    v("dataset_path", dataset_path,
      "file, folder or glob in place of the data set's own; None = its own");
    v("infinite", infinite, "start over when exhausted");
    v("num_workers", num_workers, "reader threads; the sequence of rows does not depend on it",
      between{0, 1024});
    v("prefetch_factor", prefetch_factor, "batches prepared ahead; None = 2", between{1, 65536});
    v("seed", seed, "order of later epochs and of mixtures; independent of debug.seed",
      at_least(0));
    v("shuffle", shuffle, "also shuffle the first epoch");
    v("packing", packing,
      "how documents fill rows: cut anywhere, or whole into open rows or in order",
      one_of{"concat", "first_fit", "greedy"});
    v("num_packing_bins", num_packing_bins, "first_fit: open rows", between{1, 1'000'000});
    v("text_field", text_field, "field of a JSON line (column of a table) that holds the text");
    v("on_bad_row", on_bad_row, "malformed row: stop with file and line, or skip and count",
      one_of{"stop", "skip"});
    v("sources", sources, "several sources interleaved by weight, in place of dataset");
    v("stopping_strategy", stopping_strategy,
      "with sources: end with the first or with the last exhausted one",
      one_of{"on_first_exhausted", "all_exhausted"});
    v.no_effect("pin_memory", OptionType::boolean, "false", "batches are built in place");
    v.no_effect("persistent_workers", OptionType::boolean, "false",
                "workers are threads of this process");
  }
};

// From text to ids. Options of a reader of your own: derive from it.
struct TokenizerConfig : Config {
  std::string path;
  std::string kind = "auto";
  std::string special_tokens_in_text = "control";

  void fields(Visitor& v) override {
    v("path", path, "folder or tokenizer.json; empty = hf_assets_path");
    v("kind", kind,
      "reader: auto = the first that knows the files; tokenizer_json, merges, sentencepiece, "
      "tiktoken, words, or one that a module registers");
    v("special_tokens_in_text", special_tokens_in_text,
      "special-token text inside data becomes the control id, or stays plain text",
      one_of{"control", "plain"});
  }
};

// Loss on held-out data.
struct ValidatorConfig : Config {
  bool enable = false;
  int64_t freq = 10;
  int64_t steps = -1;
  // The held-out data: c4_validation, once; its `infinite` is set to steps != -1.
  Slot<DataloaderConfig> dataloader = validation_dataloader();

  void fields(Visitor& v) override {
    v("enable", enable, "measure the loss on held-out data");
    v("freq", freq, "at step 1 and every freq steps", at_least(1));
    v("steps", steps, "batches per validation; -1 = one pass over a finite set");
    v("dataloader", dataloader, "the held-out data; its `infinite` is set to steps != -1");
  }

 private:
  static DataloaderConfig validation_dataloader() {
    DataloaderConfig loader;
    loader.dataset = "c4_validation";
    loader.infinite = false;
    return loader;
  }
};

}  // namespace rhea
