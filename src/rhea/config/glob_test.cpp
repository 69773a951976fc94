// Which texts a glob describes.
#include "rhea/config/glob.h"

#include <gtest/gtest.h>

#include "rhea/base/error.h"

namespace rhea::config {
namespace {

TEST(Glob, MatchesWholeTexts) {
  struct Case {
    const char *pattern, *text;
    bool matches;
  };
  for (const Case& c : {
           Case{"layers.0.wq", "layers.0.wq", true},
           Case{"layers.0.wq", "layers.0.wq.weight", false},
           Case{"layers.*", "layers.0.attention.wq.weight", true},  // a star crosses dots
           Case{"*.wq.*", "layers.0.attention.wq.weight", true},
           Case{"*a*b", "aab_ab", true},
           Case{"*a*b", "aab_a", false},
           Case{"layers.?.norm", "layers.7.norm", true},
           Case{"layers.?.norm", "layers.17.norm", false},
           Case{"layers.1[0-9].rope", "layers.15.rope", true},
           Case{"layers.1[0-9].rope", "layers.1.rope", false},
           Case{"layers.[!0-3].rope", "layers.4.rope", true},
           Case{"layers.[!0-3].rope", "layers.2.rope", false},
           Case{"w[123]", "w4", false},
           Case{"[]x]", "]", true},
           Case{"W1", "w1", false},
           Case{"*", "", true},
           Case{"", "", true},
           Case{"", "x", false},
       })
    EXPECT_EQ(Glob(c.pattern).matches(c.text), c.matches) << c.pattern << " on " << c.text;
}

TEST(Glob, ABracketIsClosed) {
  EXPECT_THROW(Glob("layers.[0-9"), Error);
  EXPECT_THROW(Glob("[]"), Error);
}

}  // namespace
}  // namespace rhea::config
