#include "rhea/base/rethrow.h"

#include <exception>
#include <new>

#include "rhea/base/error.h"

namespace rhea {

void rethrow_with(std::string_view before, std::string_view after) {
  const auto text = [&](std::string_view message) {
    return fmt::format("{}: {}{}", before, message, after);
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const ExitError& error) {
    std::throw_with_nested(ExitError(error.code(), text(error.what())));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(text(error.what())));
  } catch (...) {
    std::throw_with_nested(Error(text(kThrewNoText)));
  }
}

}  // namespace rhea
