// Says where an exception of somebody else's function came from: kernels, rows of ops and parts of
// a run may be a user's, and throw whatever they like.
#pragma once
#include <string_view>

namespace rhea {

// What messages say of an exception that has no text.
inline constexpr std::string_view kThrewNoText = "threw something that is no std::exception";

// Inside a handler. Throws Error "BEFORE: what was thrown AFTER" with the exception that is being
// handled nested in it (std::nested_exception), so that the line it came from can still be found.
// An ExitError keeps its code; std::bad_alloc, which has an exit code of its own, goes on as it is.
[[noreturn]] void rethrow_with(std::string_view before, std::string_view after = {});

}  // namespace rhea
