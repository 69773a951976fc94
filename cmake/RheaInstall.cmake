# The shared library, the program, and the installed package, so that an outside project says
#   find_package(rhea REQUIRED)
#   target_link_libraries(mine PRIVATE rhea::rhea)
# rhea::program is the program, say for tests of a plugin.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Sorts the targets of a list so that users come before what they use. CMake names each of them once then; an archive that is
# linked whole and twice defines everything twice, which mold takes and other linkers refuse.
function(rhea_users_first list)
  set(waiting ${${list}})
  set(sorted)
  while(waiting)
    foreach(library IN LISTS waiting)
      get_target_property(used ${library} LINK_LIBRARIES)
      set(ready TRUE)
      foreach(other IN LISTS waiting)
        if(NOT other STREQUAL library AND other IN_LIST used)
          set(ready FALSE)
          break()
        endif()
      endforeach()
      if(ready)
        list(PREPEND sorted ${library})
        list(REMOVE_ITEM waiting ${library})
        break()
      endif()
    endforeach()
    if(NOT ready)
      message(FATAL_ERROR "these libraries use each other in a circle: ${waiting}")
    endif()
  endwhile()
  set(${list} ${sorted} PARENT_SCOPE)
endfunction()

# librhea.so holds every folder; the program is main.cpp on top of it, so that a plugin finds Rhea's symbols in the process.
# Calls inside the library are bound when it is linked: kernels pay nothing for being in a shared object.
# Called once, after all libraries are defined.
function(rhea_shared_library)
  get_property(libraries GLOBAL PROPERTY RHEA_LIBRARIES)
  file(WRITE ${CMAKE_BINARY_DIR}/rhea_shared.cpp "// librhea.so consists of the static libraries.\n")
  add_library(rhea_shared SHARED ${CMAKE_BINARY_DIR}/rhea_shared.cpp)
  add_library(rhea::rhea ALIAS rhea_shared)
  rhea_users_first(libraries)
  list(JOIN libraries "," whole)
  set_target_properties(rhea_shared PROPERTIES
    OUTPUT_NAME rhea EXPORT_NAME rhea VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${whole}"
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map)
  target_link_libraries(rhea_shared PRIVATE ${libraries} rhea_options PUBLIC fmt::fmt Threads::Threads)
  target_link_options(rhea_shared PRIVATE
    LINKER:-Bsymbolic-functions LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)
  target_compile_features(rhea_shared INTERFACE cxx_std_20)
  target_include_directories(rhea_shared INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${RHEA_GENERATED_INCLUDE_DIR}>)

  add_executable(rhea_program ${CMAKE_SOURCE_DIR}/src/rhea/cli/main.cpp)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(rhea_program PROPERTIES
    OUTPUT_NAME rhea EXPORT_NAME program RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/rhea/cli
    BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN;$ORIGIN/${bin_to_lib}")
  target_link_libraries(rhea_program PRIVATE rhea_shared rhea_options)
endfunction()

function(rhea_install_package)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rhea)
  install(TARGETS rhea_shared rhea_program EXPORT rheaTargets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT rheaTargets NAMESPACE rhea:: DESTINATION ${package_dir})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/rheaConfig.cmake.in ${CMAKE_BINARY_DIR}/rheaConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/rheaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/rheaConfig.cmake ${CMAKE_BINARY_DIR}/rheaConfigVersion.cmake DESTINATION ${package_dir})
  install(CODE "
    set(SOURCE_DIR \"${CMAKE_SOURCE_DIR}\")
    set(GENERATED_DIR \"${RHEA_GENERATED_INCLUDE_DIR}\")
    set(INCLUDE_DIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
    include(${CMAKE_SOURCE_DIR}/cmake/InstallHeaders.cmake)")
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/rhea)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
