# Run as a script on every build (cmake -P): writes OUTPUT, the header that names this build for plugins. The id is a hash of
# what a plugin is compiled against: the public headers below SOURCE_DIR, the version, the compiler and its flags. The file is
# touched only when one of them changed.
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/src/rhea/*.h ${SOURCE_DIR}/recipes/*.h)
list(SORT headers)
set(all "${VERSION}\n${COMPILER}\n${FLAGS}\n")
foreach(header ${headers})
  file(SHA256 ${SOURCE_DIR}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
set(text "// Written by the build: what a plugin must have been compiled against.
#pragma once
#define RHEA_PLUGIN_VERSION \"${VERSION}\"
#define RHEA_PLUGIN_BUILD_ID \"${id}\"
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
