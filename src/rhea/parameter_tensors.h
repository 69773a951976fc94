// A model's parameters as checkpoints and published files see them: in stock parts, under their
// names.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/config/trainer_config.h"
#include "rhea/models/key_rules.h"
#include "rhea/nn/decoder.h"

namespace rhea {

// The stock parts of a parameter, or of anything with its shape (`data`), as <prefix><fqn><suffix>.
// Parts must be ranges of rows, so nothing is copied.
void add_parts(std::vector<checkpoint::NamedTensor>& out, const nn::Parameter& parameter,
               DType dtype, void* data, const std::string& prefix = "",
               const std::string& suffix = "");

// The same for parameters that may store stock tensors in another order (nn::StoredBlock). Those
// are copied: gather() before the tensors are read, scatter() after they were written.
class StockTensors {
 public:
  void add(const nn::Parameter& parameter, DType dtype, void* data, const std::string& prefix = "",
           const std::string& suffix = "");
  const std::vector<checkpoint::NamedTensor>& tensors() const { return tensors_; }
  void gather();
  void scatter();

 private:
  struct Piece {
    size_t tensor;
    nn::StoredBlock block;
    void* stored;
  };
  size_t copy_of(const std::string& name, DType dtype, const ir::Shape& shape);

  std::vector<checkpoint::NamedTensor> tensors_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
  std::vector<Piece> pieces_;
};

// The published tensors that make up `native` of this shape, which `rules` must cover; `head_dim`
// is that of permuted rows. Also for a parameter that files do not hold (KeyForm::absent).
std::vector<checkpoint::HfPart> published_parts(std::span<const models::KeyRule> rules,
                                                const std::string& native,
                                                std::span<const int64_t> shape, int64_t head_dim);
// Of a model whose parameters have the names of published files.
checkpoint::KeyMap published_key_map(const nn::Decoder::Config& model);
// The LoRA adapters of a model.
std::vector<checkpoint::Adapter> adapters_of(const nn::Decoder::Config& model);
// Of a run's model: the key rules of its family, where it has any, and its adapters.
checkpoint::KeyMap make_key_map(const ModelSpec& spec);

}  // namespace rhea
