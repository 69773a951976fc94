# rhea_library(name [BULK] SOURCES ... DEPS ... [LIBS ...] [PRIVATE_LIBS ...] [TESTS ... [TEST_LIBS ...]])
#
# One target `rhea_<name>` per folder of src/rhea. SOURCES is the explicit list, DEPS the folders it may include (the table in
# tools/check_layers), LIBS and PRIVATE_LIBS libraries of others that its headers or only its sources use, TESTS one gtest
# binary `<name>_test` from the *_test.cpp beside the code. BULK: it loops over texts, tensors or files, and is compiled for speed;
# the others run once per run or step, and are compiled in two thirds of the time.
function(rhea_library name)
  cmake_parse_arguments(ARG "BULK" "" "SOURCES;DEPS;LIBS;PRIVATE_LIBS;TESTS;TEST_LIBS" ${ARGN})
  set(target rhea_${name})
  list(TRANSFORM ARG_DEPS PREPEND rhea_)
  add_library(${target} STATIC ${ARG_SOURCES})
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS} rhea_options)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  if(ARG_BULK)
    target_precompile_headers(${target} REUSE_FROM rhea_precompiled_for_bulk)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(${target} REUSE_FROM rhea_precompiled)
  endif()
  set_property(GLOBAL APPEND PROPERTY RHEA_LIBRARIES ${target})
  if(RHEA_BUILD_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE ${target} ${ARG_TEST_LIBS} rhea_options GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      RHEA_SOURCE_DIR="${CMAKE_SOURCE_DIR}" RHEA_SHARED_DIR="${CMAKE_SOURCE_DIR}/../shared")
    rhea_test(${name}_test)
  endif()
endfunction()

# rhea_alone(SOURCES ...): these sources of a folder have names of their own in common with others, or are long: where sources are
# compiled several at a time (CMAKE_UNITY_BUILD, the preset release), they are not.
function(rhea_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# rhea_test(name): the gtest binary `name` is a test. Every graph is verified after each pass. What a test does itself takes no
# time, so its own sources are compiled as fast as the compiler can.
function(rhea_test name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
  target_precompile_headers(${name} REUSE_FROM rhea_precompiled_for_tests)
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 4)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT RHEA_VERIFY_GRAPHS=1)
endfunction()

# rhea_kernel(target SOURCES ... ISAS ...): compiles each kernel source once for each instruction set of the list. The source is
# written with vector extensions inside `namespace RHEA_ISA_NAMESPACE` (rhea/ops/simd.h); RHEA_ISA is 0 plain, 1 avx2, 2 avx512,
# 3 avx512_bf16.
set(RHEA_ISA_FLAGS_0 "")
set(RHEA_ISA_FLAGS_1 -mavx2 -mfma -mf16c)
set(RHEA_ISA_FLAGS_2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512)
set(RHEA_ISA_FLAGS_3 ${RHEA_ISA_FLAGS_2} -mavx512bf16)
function(rhea_kernel target)
  cmake_parse_arguments(ARG "" "" "SOURCES;ISAS" ${ARGN})
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(ARG_ISAS 0)
  endif()
  foreach(src ${ARG_SOURCES})
    get_filename_component(stem ${src} NAME_WE)
    get_filename_component(dir ${src} DIRECTORY)
    foreach(isa ${ARG_ISAS})
      set(obj ${target}_${stem}_isa${isa})
      set(optimize -O3)
      if(RHEA_SANITIZE)
        set(optimize -O1)  # instrumented code of unrolled tiles takes minutes a file at -O3
      elseif(isa EQUAL 0 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        set(optimize -O1)  # for CPUs without AVX2, and the reference of the others
      endif()
      add_library(${obj} OBJECT ${src})
      target_compile_definitions(${obj} PRIVATE RHEA_ISA=${isa})
      # GCC 12 takes the undefined register of its own intrinsics for a mistake of ours.
      target_compile_options(${obj} PRIVATE ${RHEA_ISA_FLAGS_${isa}} -ffp-contract=off ${optimize}
        $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
      target_link_libraries(${obj} PRIVATE rhea_options $<TARGET_PROPERTY:${target},INTERFACE_LINK_LIBRARIES>)
      target_include_directories(${obj} PRIVATE ${CMAKE_SOURCE_DIR}/src)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${obj}>)
    endforeach()
  endforeach()
endfunction()

add_library(rhea_options INTERFACE)
# What results depend on; plugins are compiled with the same.
set(RHEA_NUMERIC_FLAGS -ffp-contract=off -fno-math-errno)
target_compile_options(rhea_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Werror -Wno-missing-field-initializers
  ${RHEA_NUMERIC_FLAGS} $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# Vectors wider than the baseline's registers pass between always-inlined functions only.
target_compile_options(rhea_options INTERFACE -Wno-psabi)
# GCC 12 warns of the standard library's own strings once they come out of a precompiled header; the presets without one warn.
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  target_compile_options(rhea_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)
endif()
if(RHEA_SANITIZE)
  target_compile_options(rhea_options INTERFACE -fsanitize=${RHEA_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(rhea_options INTERFACE -fsanitize=${RHEA_SANITIZE})
endif()
if(RHEA_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "RHEA_BUILD_FUZZERS needs Clang (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER_ID}. "
      "Use `cmake --preset fuzz`; without the option the same targets run under GCC as tests.")
  endif()
  target_compile_options(rhea_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The headers of others that most sources read: parsed once for all sources of the same flags, a fifth of the time of a cold
# build. Each source includes what it needs all the same; the sanitizer presets compile without.
set(precompiled <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp> <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem>
  <fstream> <functional> <map> <memory> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map> <utility>
  <vector>)
file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "// What a precompiled header belongs to.\n")
# rhea_precompile(target optimize [TESTS]): what targets of these flags name in REUSE_FROM.
function(rhea_precompile target optimize)
  cmake_parse_arguments(ARG "TESTS" "" "" ${ARGN})
  if(ARG_TESTS)  # flags of an executable
    add_executable(${target} ${CMAKE_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
    target_precompile_headers(${target} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  else()
    add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${optimize}>)
  target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json rhea_options)
  target_precompile_headers(${target} PRIVATE ${precompiled})
endfunction()
rhea_precompile(rhea_precompiled -O1)
rhea_precompile(rhea_precompiled_for_bulk -O3)
if(RHEA_BUILD_TESTS)
  rhea_precompile(rhea_precompiled_for_tests -Og TESTS)
endif()

# What ccache takes a precompiled header for: everything that its content depends on. Call it when the packages are found.
function(rhea_name_precompiled)
  get_target_property(options rhea_options INTERFACE_COMPILE_OPTIONS)
  foreach(target rhea_precompiled rhea_precompiled_for_bulk rhea_precompiled_for_tests)
    file(CONFIGURE OUTPUT CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum CONTENT "${target} ${precompiled} ${options} \
${CMAKE_CXX_FLAGS} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS_RELEASE} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} \
${CMAKE_SYSTEM_PROCESSOR} fmt ${fmt_VERSION} json ${nlohmann_json_VERSION} gtest ${GTest_VERSION}\n")
  endforeach()
endfunction()
