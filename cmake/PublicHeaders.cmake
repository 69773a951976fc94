# rhea_public_headers(source_dir result): the headers that outside code may include, and those that they include themselves,
# relative to the folders of the include path (src/ and the root). Nothing else is installed.
function(rhea_public_headers source_dir result)
  # What a file of a user begins with.
  set(open rhea/plugin/plugin.h rhea/plugin/loader.h rhea/train.h rhea/base/version.h rhea/ops/ops.h rhea/ops/row.h
    rhea/ops/element.h rhea/ops/grouped/grouped.h rhea/ops/route/route.h rhea/models/registry.h rhea/models/flavor.h rhea/models/parts.h rhea/models/key_rules.h)
  file(GLOB more RELATIVE ${source_dir}/src ${source_dir}/src/rhea/nn/*.h ${source_dir}/src/rhea/models/llama3/llama3.h
    ${source_dir}/src/rhea/models/qwen3/qwen3.h ${source_dir}/src/rhea/models/converters/*.h)
  list(FILTER more EXCLUDE REGEX "init_kernel|replacement_check|rope_buffers")  # of the trainer
  file(GLOB recipes RELATIVE ${source_dir} ${source_dir}/recipes/*.h)
  list(APPEND open ${more} ${recipes})
  set(found)
  while(open)
    list(POP_FRONT open header)
    if(header IN_LIST found OR header STREQUAL "rhea/plugin/build_id.h")
      continue()
    endif()
    list(APPEND found ${header})
    set(file ${source_dir}/src/${header})
    if(header MATCHES "^recipes/")
      set(file ${source_dir}/${header})
    endif()
    file(STRINGS ${file} includes REGEX "^#include \"")
    foreach(line ${includes})
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" include "${line}")
      list(APPEND open ${include})
    endforeach()
  endwhile()
  list(SORT found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()
