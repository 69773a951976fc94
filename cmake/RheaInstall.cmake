# Install rules: the program, the libraries, the headers, and a package config, so that an outside project says
#   find_package(rhea REQUIRED)
#   target_link_libraries(mine PRIVATE rhea::rhea)
# rhea::rhea links every library; rhea::base, rhea::ir, ... are the single folders.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Adds `target` to the exported package under the name rhea::<name>.
function(rhea_export target name)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT rheaTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set_property(GLOBAL APPEND PROPERTY RHEA_EXPORTED_TARGETS ${target})
endfunction()

# Called once, after all libraries are defined.
function(rhea_install_package)
  get_property(targets GLOBAL PROPERTY RHEA_EXPORTED_TARGETS)
  rhea_export(rhea_options options)
  rhea_export(rhea_dnnl dnnl)
  add_library(rhea_all INTERFACE)
  target_link_libraries(rhea_all INTERFACE ${targets})
  rhea_export(rhea_all rhea)

  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rhea)
  install(EXPORT rheaTargets NAMESPACE rhea:: DESTINATION ${package_dir})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/rheaConfig.cmake.in ${CMAKE_BINARY_DIR}/rheaConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/rheaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/rheaConfig.cmake ${CMAKE_BINARY_DIR}/rheaConfigVersion.cmake DESTINATION ${package_dir})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/rhea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "test_*.h" EXCLUDE)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(TARGETS rhea_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
