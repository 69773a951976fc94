# Run as a script on every build (cmake -P): writes OUTPUT, the header that names this build for plugins. The id is a hash of
# what a plugin is compiled against: the public headers of SOURCE_DIR, the version, the compiler and its flags. The file is
# touched only when one of them changed.
cmake_policy(VERSION 3.25)
include(${SOURCE_DIR}/cmake/PublicHeaders.cmake)
rhea_public_headers(${SOURCE_DIR} headers)
set(all "${VERSION}\n${COMPILER}\n${FLAGS}\n")
foreach(header ${headers})
  set(file ${SOURCE_DIR}/src/${header})
  if(header MATCHES "^recipes/")
    set(file ${SOURCE_DIR}/${header})
  endif()
  file(SHA256 ${file} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
set(text "// Written by the build: what a plugin must have been compiled against.
#pragma once
#define RHEA_PLUGIN_VERSION \"${VERSION}\"
#define RHEA_PLUGIN_BUILD_ID \"${id}\"
")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${text}" @ONLY)  # leaves an equal file alone
