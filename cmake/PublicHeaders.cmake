# The headers that outside code may include, relative to the folders of the include path (src/ and the root). Nothing else is
# installed, and none of them includes a header that is not here.
set(rhea_public_list
  # runs and plugins
  rhea/plugin/plugin.h
  rhea/plugin/stamp.h
  rhea/plugin/loader.h
  rhea/train.h
  recipes/llama3.h
  recipes/qwen3.h
  recipes/transformers_backend.h
  # errors, dtypes, tables
  rhea/base/cpu_features.h
  rhea/base/dtype.h
  rhea/base/error.h
  rhea/base/named_table.h
  rhea/base/version.h
  # configs and overrides
  rhea/config/config.h
  rhea/config/config_entry.h
  rhea/config/derive.h
  rhea/config/model_converter.h
  rhea/config/override_registry.h
  rhea/config/trainer_config.h
  rhea/config/visitor.h
  rhea/config/sections/activation_checkpoint.h
  rhea/config/sections/checkpoint.h
  rhea/config/sections/comm.h
  rhea/config/sections/compile.h
  rhea/config/sections/data.h
  rhea/config/sections/debug.h
  rhea/config/sections/hf_overrides.h
  rhea/config/sections/loss.h
  rhea/config/sections/metrics.h
  rhea/config/sections/optimizer.h
  rhea/config/sections/override.h
  rhea/config/sections/parallelism.h
  rhea/config/sections/training.h
  # graphs, ops and kernels
  rhea/ir/attr.h
  rhea/ir/cpu_kernel.h
  rhea/ir/graph.h
  rhea/ir/op_def.h
  rhea/ir/row_op.h
  rhea/ir/type.h
  rhea/ops/element.h
  rhea/ops/grouped/grouped.h
  rhea/ops/ops.h
  rhea/ops/route/route.h
  rhea/ops/row.h
  rhea/ops/table.h
  # modules
  rhea/nn/activation.h
  rhea/nn/alibi.h
  rhea/nn/attention.h
  rhea/nn/decoder.h
  rhea/nn/decoder_names.h
  rhea/nn/feed_forward.h
  rhea/nn/float8_linear.h
  rhea/nn/gated_delta_net.h
  rhea/nn/init.h
  rhea/nn/joined_linear.h
  rhea/nn/lora_linear.h
  rhea/nn/losses.h
  rhea/nn/mla.h
  rhea/nn/modules.h
  rhea/nn/moe.h
  rhea/nn/norm.h
  rhea/nn/qkv.h
  rhea/nn/rope_tables.h
  rhea/nn/stored_block.h
  rhea/nn/trace.h
  rhea/nn/trainable.h
  rhea/nn/transposed_linear.h
  # models and converters
  rhea/models/converters/convert.h
  rhea/models/converters/float8.h
  rhea/models/converters/freeze.h
  rhea/models/converters/lora.h
  rhea/models/decoder_sizes.h
  rhea/models/flavor.h
  rhea/models/hf/published_config.h
  rhea/models/key_rules.h
  rhea/models/llama3/llama3.h
  rhea/models/parts.h
  rhea/models/qwen3/qwen3.h
  rhea/models/registry.h
  # data sets, tokenizers, optimizers, schedules, metric sinks
  rhea/components/data/datasets.h
  rhea/components/data/document_source.h
  rhea/components/data/numbered_rows.h
  rhea/components/data/options.h
  rhea/components/lr_scheduler/lr_scheduler.h
  rhea/components/metrics/metric.h
  rhea/components/metrics/sinks.h
  rhea/components/tokenizer/readers.h
  rhea/components/tokenizer/tokenizer.h
  rhea/components/train_step/optimizers.h)

# rhea_public_headers(source_dir result): the list above. An error where one of them includes a header of Rhea that is not in it.
function(rhea_public_headers source_dir result)
  set(known ${rhea_public_list} rhea/plugin/build_id.h)  # the latter is written by the build
  set(problems)
  foreach(header ${rhea_public_list})
    set(file ${source_dir}/src/${header})
    if(header MATCHES "^recipes/")
      set(file ${source_dir}/${header})
    endif()
    file(STRINGS ${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<(rhea|recipes)/)")
    foreach(line ${includes})
      string(REGEX REPLACE "^[^\"<]*[\"<]([^\">]*)[\">].*" "\\1" include "${line}")
      if(NOT include IN_LIST known)
        list(APPEND problems "${header} includes ${include}")
      endif()
    endforeach()
  endforeach()
  if(problems)
    list(JOIN problems "\n  " problems)
    message(FATAL_ERROR "public headers include what is not public:\n  ${problems}\n"
      "Include it from a .cpp file, or declare what is needed; where outside code needs it, add it to the list in cmake/PublicHeaders.cmake.")
  endif()
  set(${result} ${rhea_public_list} PARENT_SCOPE)
endfunction()
