# Run as a script on every build (cmake -P): writes the short git revision of SOURCE_DIR into the header OUTPUT. The file is
# touched only when the revision changed, so nothing is rebuilt otherwise. A tree without git has the revision "unknown".
set(revision "unknown")
if(GIT_EXECUTABLE)
  # safe.directory: a build as another user than the owner of the tree, e.g. root in a container.
  execute_process(COMMAND ${GIT_EXECUTABLE} -c safe.directory=${SOURCE_DIR} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(revision "${output}")
  endif()
endif()
set(text "#define RHEA_GIT_REVISION \"${revision}\"\n")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${text}" @ONLY)  # leaves an equal file alone
